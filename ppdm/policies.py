"""Read the policy that judges a release which any tool made."""

from __future__ import annotations

from pathlib import Path

from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import Policy

DEFAULT_POLICY = Path(__file__).with_name("default_policy.toml")
SYNTHETIC_POLICY = Path(__file__).with_name("synthetic_policy.toml")


def load_policy(path: Path | None) -> Policy:
    """Return the policy in a file, or the default policy."""
    from ppdm_core.settings.policy_text import POLICY_FILE, parse_policy

    path = path or DEFAULT_POLICY
    try:
        return parse_policy(path.read_bytes())
    except FileNotFoundError:
        problem = BadInput(f"The {POLICY_FILE} does not exist.", remedy="Check the path.")
    except OSError as error:
        problem = BadInput(
            f"The {POLICY_FILE} cannot be read ({type(error).__name__}).",
            remedy="Check the path and its permissions.",
        )
    except BadInput as error:
        problem = error
    raise problem.in_file(str(path))
