create schema raw;
create schema validated;
create schema sanitized;
create schema audit;
create schema published;

create table meta.dataset (
    name varchar not null,
    owner varchar not null,
    key_fingerprint varchar,
    created timestamptz not null
);

create table meta.run (
    release_id varchar not null,
    dataset varchar not null,
    number integer not null,
    source_digest varchar not null,
    file_digest varchar not null,
    code_version varchar not null,
    stage varchar not null,
    pid integer not null,
    flow_run_id varchar,
    started timestamptz not null
);

-- append-only: written in the same transaction as the change that it tells of
create sequence meta.event_number;
create table meta.event (
    number bigint default nextval('meta.event_number'),
    happened timestamptz not null,
    dataset varchar not null,
    release_id varchar not null,
    kind varchar not null,
    detail json not null
);

-- what was learned from records, reused by every later release
create table meta.fitted (
    dataset varchar not null,
    identity varchar not null,
    release_id varchar not null,
    state json not null
);

-- one row for every kind of fact that a stage leaves behind: "validated", "sanitized", "report"
create table meta.fact (
    release_id varchar not null,
    kind varchar not null,
    value json not null
);

create table audit.score (
    release_id varchar not null,
    name varchar not null,
    value double, low double, high double, n bigint, baseline double, worst double
);

create table audit.verdict (
    release_id varchar not null,
    outcome varchar not null,
    data_digest varchar not null,
    policy_digest varchar not null,
    code_version varchar not null,
    findings json not null,
    happened timestamptz not null
);

create table published.version (
    dataset varchar not null,
    number integer not null,
    release_id varchar not null,
    data_digest varchar not null,
    manifest_digest varchar not null,
    happened timestamptz not null
);
