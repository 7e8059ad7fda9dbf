/**
 * Schema 1: the facts of docs/inbox.md in a physical form that writes little, and near. Bodies lie apart from their events,
 * so that a settled event rewrites no body; ids grow, so that rows and indexes are appended to. The prefix keeps the tables
 * apart from those of an application that shares the file for its effects.
 */
export const inbox = `
create table oncehook_meta (key text primary key, value) without rowid;

create table oncehook_counter (name text primary key, value integer not null) without rowid;
insert into oncehook_counter (name, value) values
  ('next_event', 1), ('next_lane', 1), ('newest_signed', -1), ('service_resigns', 0),
  ('pending', 0), ('dead', 0), ('held', 0), ('held_bytes', 0), ('blocked', 0),
  ('accepted', 0), ('duplicates', 0), ('conflicts', 0), ('late', 0), ('handled', 0), ('unhandled', 0), ('retried', 0),
  ('dead_lettered', 0), ('discarded', 0), ('gaps_skipped', 0), ('quarantined', 0);

create table oncehook_client (id integer primary key, name text not null unique);
create table oncehook_kind (id integer primary key, name text not null unique);

create table oncehook_instance (
  id integer primary key autoincrement, name text not null unique, host text not null, pid integer not null,
  pid_started text not null, opened integer not null, seen integer, keyring text, counters text
);

-- ready_at is null exactly when the lane is idle or blocked; leased, holder are set exactly when it is leased.
-- below: a pending event may lie below the cursor, or be late. While 0, the head is looked for from the cursor on.
create table oncehook_lane (
  id integer primary key, client integer not null, tag integer not null, message text not null,
  status integer not null, ready_at integer, cursor integer, gap_since integer,
  epoch integer not null, holder integer, leased integer, below integer not null, peer text, reference text
);
create unique index oncehook_lane_key on oncehook_lane (client, tag, message);
create index oncehook_lane_due on oncehook_lane (ready_at) where status >= 3;
create index oncehook_lane_lease on oncehook_lane (ready_at) where status = 2;

create table oncehook_event (
  id integer primary key, lane integer not null, seq integer not null, kind integer not null,
  state integer not null, outcome integer, keep integer, finished integer, attempts integer not null, started integer,
  late integer not null, forced integer not null, duplicates integer not null, conflict integer not null,
  gap_wait integer not null, occurred integer not null, signed integer not null, accepted integer not null,
  error_code text, error text, digest blob not null, trace text
);
-- The identity, and the index that finds a lane's head.
create unique index oncehook_event_identity on oncehook_event (lane, seq, kind);
create index oncehook_event_open on oncehook_event (state) where state <> 1;
create index oncehook_event_keep on oncehook_event (keep, finished) where keep is not null;
create index oncehook_event_unhandled on oncehook_event (outcome) where outcome = 2;
create index oncehook_event_late on oncehook_event (late) where late = 1;
create index oncehook_event_conflict on oncehook_event (conflict) where conflict = 1;
create index oncehook_event_error on oncehook_event (error_code) where error_code is not null;

create table oncehook_body (event integer primary key, raw blob not null);
create table oncehook_conflict (event integer primary key, digest blob not null, signed integer not null, at integer not null, raw blob not null);
create table oncehook_gap (
  lane integer not null, hi integer not null, lo integer not null, skipped integer not null, filled integer,
  primary key (lane, hi)
) without rowid;
create table oncehook_attempt (
  id integer primary key, event integer not null, attempt integer not null, at integer not null,
  duration integer not null, error_code text not null, error text not null
);
create index oncehook_attempt_event on oncehook_attempt (event);

create table oncehook_quarantine (
  id integer primary key autoincrement, digest blob not null unique, reason text not null, slot text not null,
  scope text not null, state integer not null, replayed_as integer, signed integer not null, accepted integer not null,
  bytes integer not null, trace text, raw blob
);
create index oncehook_quarantine_held on oncehook_quarantine (slot, bytes) where state = 0;
create index oncehook_quarantine_accepted on oncehook_quarantine (accepted);

create table oncehook_audit (
  id integer primary key autoincrement, at integer not null, by text not null, act text not null, detail text not null
);
`;
