-- what was drawn of whom, for every release that was judged; names are keyed digests
create schema ledger;

-- one row a verdict: figures are ln gamma of the record that was worst off, as judged
create table ledger.entry (
    number integer not null,
    dataset varchar not null,
    audience varchar not null,
    release_id varchar not null,
    kind varchar not null,  -- charged, refused by the ledger, inherited from before it
    method varchar not null,
    records bigint not null,  -- drawn anew
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

-- record 0 stands for everybody; is_first: no audience had this draw before
create table ledger.charge (
    entry integer not null,
    record ubigint not null,
    draw_high ubigint not null,
    draw_low ubigint not null,
    ln_gamma double not null,
    is_first boolean not null
);
