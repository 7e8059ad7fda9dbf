/** Renews leases, each only while it is still held. */
import type { LeaseRef } from "../../inbox/store.ts";
import type { OpenInbox } from "./open-inbox.ts";

const EXTEND = `with wanted as (select * from unnest($1::bigint[], $2::int[], $3::bigint[]) as w (lane, epoch, event)),
  held as (select l.id from {}.lane l join wanted w on w.lane = l.id
    where l.status = 2 and l.epoch = w.epoch and l.leased = w.event and l.holder = $4::int order by l.id for update of l)
  update {}.lane set ready_at = $5::bigint where id in (select id from held) returning id, epoch, leased`;

export function extend(inbox: OpenInbox, leases: readonly LeaseRef[], leaseMs: number): Promise<readonly boolean[]> {
  return inbox.transaction(async (session) => {
    const now = await inbox.now(session);
    const rows = await session.rows<{ id: number; epoch: number; leased: number }>("extend", EXTEND, [
      leases.map(({ lane }) => lane),
      leases.map(({ epoch }) => epoch),
      leases.map(({ event }) => event),
      inbox.instance,
      Math.round(now + leaseMs),
    ]);
    const held = new Set(rows.map(({ id, epoch, leased }) => `${id} ${epoch} ${leased}`));
    return leases.map(({ lane, epoch, event }) => held.has(`${lane} ${epoch} ${event}`));
  });
}
