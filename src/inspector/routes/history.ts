/** `GET api/history`: what was seen since somebody began to look, for the charts. */
import { json } from "../answers.ts";
import { refusedQuery } from "../input.ts";
import type { Route } from "../route.ts";

export const historyRoute: Route = {
  method: "GET",
  path: "history",
  access: "read",
  run: ({ watch, query }) => refusedQuery({ query }) ?? json(watch.history()),
};
