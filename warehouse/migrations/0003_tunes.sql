-- what `ppdm tune` measured: one row for each tune that ended; events record the settings tried
create table audit.tune (
    dataset varchar not null,
    number integer not null,  -- of the dataset's tunes
    data varchar not null,  -- digest of the validated records
    policy varchar not null,  -- digest
    result json not null,
    happened timestamptz not null,
    mac varchar
);
