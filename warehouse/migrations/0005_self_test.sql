-- how often each attack noticed the leaks that were planted for it, with one version of the code
create table audit.self_test (
    release_id varchar not null,
    version varchar not null,
    attack varchar not null,
    proofs json not null,
    happened timestamptz not null,
    mac varchar
);
