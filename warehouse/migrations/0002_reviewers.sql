-- reviewers' keys: one row for each key that was enrolled or removed, in order; all rows but the
-- first are signed by an enrolled key
create table meta.reviewer (
    action varchar not null,  -- add or remove
    name varchar not null,
    public varchar not null,  -- Ed25519, hexadecimal
    previous varchar not null,  -- digest of the row before, with its signature
    signer varchar,  -- public key
    signature varchar,
    happened timestamptz not null,
    mac varchar
);

-- in a home with keys: of the author, and of the decision
alter table meta.author add column public varchar;
alter table meta.author add column signature varchar;
alter table audit.decision add column verdict_digest varchar;
alter table audit.decision add column salt varchar;  -- hides the note from readers of its digest
alter table audit.decision add column public varchar;
alter table audit.decision add column signature varchar;
