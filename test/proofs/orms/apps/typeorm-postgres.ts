/** TypeORM on Postgres: an entity manager whose query runner has the effect's connection. */
import "reflect-metadata";
import { postgresStore } from "oncehook/postgres";
import { Pool, type PoolClient } from "pg";
import { Column, DataSource, Entity, type EntityManager, PrimaryGeneratedColumn } from "typeorm";
import type { PostgresDriver } from "typeorm/driver/postgres/PostgresDriver.js";
import { PostgresQueryRunner } from "typeorm/driver/postgres/PostgresQueryRunner.js";
import { assignment, serveEffect, Undo, undone } from "./serve.ts";

@Entity("orders")
class Order {
  @PrimaryGeneratedColumn("identity")
  id!: number;
  @Column("text")
  identity!: string;
}

/** It connects to nothing: the connection is there already. */
class LentQueryRunner extends PostgresQueryRunner {
  constructor(source: DataSource, tx: PoolClient) {
    super(source.driver as PostgresDriver, "master");
    this.databaseConnection = tx;
  }
}

const { url, schema } = assignment;
const pool = new Pool({ connectionString: url });
const source = await new DataSource({ type: "postgres", url, entities: [Order] }).initialize();
const managerOn = (tx: PoolClient): EntityManager => source.createEntityManager(new LentQueryRunner(source, tx));

await serveEffect(postgresStore(pool, { schema }), async (tx, { identity, nested }) => {
  const manager = managerOn(tx);
  if (!nested) return manager.insert(Order, { identity });
  // A fresh one each time: TypeORM writes the id into it.
  const undo = () => ({ identity: `undone ${identity}` });
  await manager.transaction(async (inner) => {
    await inner.save(Order, { identity });
    await inner
      .transaction(async (deeper) => {
        await deeper.insert(Order, undo());
        throw new Undo();
      })
      .catch(undone);
  });
  await manager
    .transaction(async (inner) => {
      await inner.insert(Order, undo());
      throw new Undo();
    })
    .catch(undone);
});
