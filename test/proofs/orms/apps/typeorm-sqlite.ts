/** TypeORM on SQLite: it waits for its driver, so it only makes the SQL, which the effect's connection runs. */
import "reflect-metadata";
import { sqliteStore } from "oncehook/sqlite";
import { Column, DataSource, Entity, PrimaryGeneratedColumn } from "typeorm";
import { assignment, serveEffect } from "./serve.ts";

@Entity("orders")
class Order {
  @PrimaryGeneratedColumn()
  id!: number;
  @Column("text")
  identity!: string;
}

const { path } = assignment;
const source = await new DataSource({ type: "better-sqlite3", database: path, entities: [Order] }).initialize();

await serveEffect(sqliteStore(path), (tx, { identity }) => {
  const insert = source.createQueryBuilder().insert().into(Order).values({ identity });
  const [sql, parameters] = insert.getQueryAndParameters();
  tx.prepare(sql).run(...parameters);
});
