/**
 * Schema 1: the facts of docs/inbox.md. Texts that a service writes are `bytea`, because ids may hold NUL, which `text` does not
 * take. Bodies lie apart from their events, so that a settled event rewrites no body. Counters are rows of each instance, and of each
 * slot in which it commits: a row that all wrote to would make their commits wait for each other.
 */
export const inbox = `
create table meta (key text primary key, value text not null);

create table client (id int generated always as identity primary key, name bytea not null unique);
create table kind (id int generated always as identity primary key, name bytea not null unique);

create table instance (
  id int generated always as identity primary key, name text not null unique, host text not null, pid int not null,
  pid_started text not null, opened bigint not null, seen bigint, keyring text, counters jsonb
);

-- Instance 0 holds what those that are gone had counted. Gauges are sums of changes.
create table tally (
  instance int not null, slot smallint not null default 0, pending bigint not null default 0, dead bigint not null default 0, held bigint not null default 0,
  held_bytes bigint not null default 0, blocked bigint not null default 0, accepted bigint not null default 0,
  duplicates bigint not null default 0, conflicts bigint not null default 0, late bigint not null default 0,
  handled bigint not null default 0, unhandled bigint not null default 0, retried bigint not null default 0,
  dead_lettered bigint not null default 0, discarded bigint not null default 0, gaps_skipped bigint not null default 0,
  quarantined bigint not null default 0, newest_signed bigint, resigned boolean not null default false,
  primary key (instance, slot)
) with (fillfactor = 50);
insert into tally (instance) values (0);

-- ready_at is null exactly when the lane is idle or blocked; leased and holder are set exactly when it is leased.
create sequence lane_id;
create table lane (
  id bigint primary key, client int not null, tag smallint not null, message bytea not null,
  status smallint not null default 0, ready_at bigint, cursor bigint, gap_since bigint, epoch int not null default 0,
  holder int, leased bigint, peer bytea, reference bytea, unique (client, tag, message)
) with (fillfactor = 70);
create index lane_due on lane (ready_at, id) where status >= 3;
create index lane_lease on lane (ready_at, id) where status = 2;

create sequence event_id;
create table event (
  id bigint primary key, lane bigint not null, seq bigint not null, kind int not null, state smallint not null,
  outcome smallint, keep smallint, finished bigint, attempts int not null, started bigint, late boolean not null,
  forced boolean not null, duplicates int not null, conflict boolean not null, gap_wait bigint not null,
  occurred bigint not null, signed bigint not null, accepted bigint not null, error_code text, error text,
  digest bytea not null, trace text, has_body boolean not null, unique (lane, seq, kind)
) with (fillfactor = 80);
create index event_open on event (state, id) where state <> 1;
create index event_keep on event (keep, finished) where keep is not null;
create index event_unhandled on event (id) where outcome = 2;
create index event_late on event (id) where late;
create index event_conflict on event (id) where conflict;
create index event_error on event (error_code, id) where error_code is not null;

create table body (event bigint primary key, raw bytea not null);
create table conflict (event bigint primary key, digest bytea not null, signed bigint not null, at bigint not null, raw bytea not null);
create table gap (
  lane bigint not null, hi bigint not null, lo bigint not null, skipped bigint not null, filled bigint, primary key (lane, hi)
);
create table attempt (
  id bigint generated always as identity primary key, event bigint not null, attempt int not null, at bigint not null,
  duration bigint not null, error_code text not null, error text not null
);
create index attempt_event on attempt (event);

create table quarantine (
  id bigint generated always as identity primary key, digest bytea not null unique, reason text not null, slot text not null,
  scope text not null, state smallint not null default 0, replayed_as bigint, signed bigint not null, accepted bigint not null,
  bytes int not null, trace text, raw bytea
);
create index quarantine_held on quarantine (slot, bytes) where state = 0;
create index quarantine_accepted on quarantine (accepted);

create table audit (
  id bigint generated always as identity primary key, at bigint not null, by text not null, act text not null, detail text not null
);
`;
