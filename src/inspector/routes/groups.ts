/** `GET api/groups`: dead letters that failed alike. */
import { json } from "../answers.ts";
import type { ErrorGroups } from "../api.ts";
import type { Route } from "../route.ts";

/** Errors whose texts all differ would make a group each. */
const MOST_GROUPS = 100;

export const groupsRoute: Route = {
  method: "GET",
  path: "groups",
  access: "read",
  async run({ inbox }) {
    const groups = await inbox.groupByError();
    return json(groups.slice(0, MOST_GROUPS) satisfies ErrorGroups);
  },
};
