/**
 * Schema 2: the webhook secrets of a kind, sealed outside of the database. `revision` grows with each write, so that of two
 * who read the same one only one replaces it. Beside the tables of schema 1, which stay as they are.
 */
export const secrets = `
create table oncehook_secret (kind text primary key, revision integer not null, sealed blob not null, changed integer not null) without rowid;
`;
