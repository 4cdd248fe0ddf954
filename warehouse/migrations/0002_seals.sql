-- rows with a MAC cannot be edited unnoticed; null: older than the seals
alter table meta.event alter number drop default;
drop sequence meta.event_number;
alter table meta.event add column mac varchar;
alter table audit.verdict add column mac varchar;

-- the same for facts, which are checked when they are read; no event names them
alter table meta.fact add column seal varchar;

-- of the key that seals this warehouse and signs its manifests
create table meta.home_key (fingerprint varchar not null);
