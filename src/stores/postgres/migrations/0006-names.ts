/**
 * Schema 6: whether any event is of a type is looked up when the names of types are pruned, and never otherwise: the condition, which always
 * holds, keeps the planner from taking the index for anything else. A process that remembers names looks at `names_pruned`.
 */
export const names = `
create index event_kind on event (kind) where kind > 0;
insert into meta (key, value) values ('names_pruned', '0') on conflict (key) do nothing;
`;
