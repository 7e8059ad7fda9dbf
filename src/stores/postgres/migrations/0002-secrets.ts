/**
 * Schema 2: the webhook secrets of a kind, sealed outside of the database. `revision` grows with each write, so that of two
 * who read the same one only one replaces it. Beside the tables of schema 1, which stay as they are.
 */
export const secrets = `
create table secret (kind text primary key, revision bigint not null, sealed bytea not null, changed bigint not null);
`;
