create schema raw;
create schema validated;
create schema sanitized;
create schema audit;
create schema ledger;
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

-- append-only: written in the same transaction as the change that it records;
-- rows with a MAC cannot be edited without notice
create table meta.event (
    number bigint,
    happened timestamptz not null,
    dataset varchar not null,
    release_id varchar not null,
    kind varchar not null,
    detail json not null,
    mac varchar
);

-- what was learned from records, reused by every later release; set_aside: names in the ledger, of
-- eight bytes each, of the records that were set aside for it
create table meta.fitted (
    dataset varchar not null,
    identity varchar not null,
    release_id varchar not null,
    state json not null,
    set_aside blob not null
);

-- one row for each kind of facts that a step stores: "settings", "validated", "sanitized",
-- "audited", "ending";
-- the seal is checked when they are read, and no event names it
create table meta.fact (
    release_id varchar not null,
    kind varchar not null,
    value json not null,
    seal varchar
);

-- of the key that seals this warehouse and signs its manifests
create table meta.home_key (fingerprint varchar not null);

-- who made a release: they may not approve it (uid is null for the owner that the file names)
create table meta.author (
    release_id varchar not null,
    uid bigint,
    name varchar not null,
    happened timestamptz not null,
    mac varchar
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
    happened timestamptz not null,
    mac varchar
);

-- what people decided of releases that awaited review
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

-- the release file of what awaits review, with which it is published
create table audit.waiting (
    release_id varchar not null,
    file json not null,
    mac varchar
);

-- how often each attack noticed the leaks that were planted for it, with one version of the code
create table audit.self_test (
    release_id varchar not null,
    version varchar not null,
    attack varchar not null,
    proofs json not null,
    happened timestamptz not null,
    mac varchar
);

-- one row for each validated table: what it added to the records of its data group, and its ids
create table audit.sketch (
    number integer not null,
    release_id varchar not null,
    data_groups json not null,  -- numbers of the first sketches of the same data
    records bigint not null,  -- that it added
    record_values bigint not null,
    digest varchar not null,  -- of both
    unknown_ids bigint not null,  -- records whose ids no earlier release of the dataset had
    renumbered bigint not null,  -- of these, records with values of earlier ones
    mac varchar
);

-- the records of every validated table, or a sample of them, without a value: equal rows of a group
-- have one name; account is the name in the ledger, 0 without an id
create table audit.record (
    sketch integer not null,
    data_group integer not null,
    name ubigint not null,
    account ubigint not null,
    copies bigint not null,  -- rows of that name in its table
    sampled_share double not null  -- share of the rows of its table that were drawn
);

-- keyed digests of the values of these records, and of their complete rows; of a sample only the
-- rare ones. column_name is a keyed digest, 0 for a complete row.
create table audit.record_value (
    sketch integer not null,
    data_group integer not null,
    name ubigint not null,
    column_name ubigint not null,
    digest ubigint not null,
    is_rare boolean not null
);

-- one row for each verdict: figures are ln gamma of the most exposed record, as judged
create table ledger.entry (
    number integer not null,
    dataset varchar not null,
    audience varchar not null,
    release_id varchar not null,
    kind varchar not null,  -- charged, or refused by the ledger
    method varchar not null,
    records bigint not null,  -- with new draws
    spent double not null,
    asked double not null,
    total double not null,
    draws bigint not null,  -- of one record at most, by methods without a bound
    unbounded bigint not null,  -- charges of this entry without a bound
    charges bigint not null,
    digest varchar not null,  -- of all its charges
    terms json not null,  -- limits and waivers that it was judged by
    happened timestamptz not null,
    mac varchar
);

-- what was drawn of which record: names are keyed digests, record 0 stands for all records;
-- is_first: no audience had this draw before
create table ledger.charge (
    entry integer not null,
    record ubigint not null,
    draw_high ubigint not null,
    draw_low ubigint not null,
    ln_gamma double not null,
    is_first boolean not null
);

create table published.version (
    dataset varchar not null,
    number integer not null,
    release_id varchar not null,
    data_digest varchar not null,
    manifest_digest varchar not null,
    happened timestamptz not null
);
