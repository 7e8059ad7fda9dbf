// `npm run migrate`, before a deployment: makes the application's own table. The inbox makes its tables itself when it is opened.
import pg from "pg";

if (!process.env.DATABASE_URL) {
  console.error(
    "DATABASE_URL is not set: put the database's address, postgres://user:password@host:5432/database, in it.",
  );
  process.exit(1);
}
try {
  const client = new pg.Client({ connectionString: process.env.DATABASE_URL });
  await client.connect();
  await client.query(`create table if not exists handled (
    id bigint generated always as identity primary key, message_id text, sequence integer, event_type text)`);
  await client.end();
} catch (error) {
  // Only the code: the text may quote a part of the address, and with it the password.
  console.error(`DATABASE_URL: the table "handled" could not be made in this database (${error.code ?? "no code"}).`);
  process.exit(1);
}
