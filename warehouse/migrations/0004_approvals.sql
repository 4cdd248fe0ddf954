-- who made a release: they may not approve it (uid is null for the owner that the file names)
create table meta.author (
    release_id varchar not null,
    uid bigint,
    name varchar not null,
    happened timestamptz not null,
    mac varchar
);

-- what people decided of releases that the gate left to them
create table audit.decision (
    release_id varchar not null,
    choice varchar not null,
    uid bigint not null,
    name varchar not null,
    shown varchar,
    note varchar not null,
    data_digest varchar not null,
    policy_digest varchar not null,
    code_version varchar not null,
    happened timestamptz not null,
    mac varchar
);

-- the release file of what waits, to publish it by
create table audit.waiting (
    release_id varchar not null,
    file json not null,
    mac varchar
);
