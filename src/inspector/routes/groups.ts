/** `GET api/groups`: dead letters that failed alike. */
import { json } from "../answers.ts";
import type { ErrorGroups } from "../api.ts";
import { refusedQuery } from "../input.ts";
import { OneAtATime } from "../one-at-a-time.ts";
import type { Call, Route } from "../route.ts";

/** Errors whose texts all differ would make a group each. */
const MOST_GROUPS = 100;

/** 100,000 dead letters take seconds, also when whoever asked has left and asks again. One for each inspector, which its watch stands for. */
const counting = new WeakMap<Call["watch"], OneAtATime<ErrorGroups>>();

export const groupsRoute: Route = {
  method: "GET",
  path: "groups",
  access: "read",
  async run({ inbox, watch, query }) {
    const refusal = refusedQuery({ query });
    if (refusal !== null) return refusal;
    const work = counting.get(watch) ?? new OneAtATime<ErrorGroups>(() => inbox.groupByError());
    counting.set(watch, work);
    const groups = await work.ask();
    return json(groups.slice(0, MOST_GROUPS) satisfies ErrorGroups);
  },
};
