/**
 * Schema 5: whether any event is of a type is looked up when the names of types are pruned, and never otherwise: the condition, which always
 * holds, keeps the planner from taking the index for anything else. A process that remembers names looks at `names_pruned`; a number is
 * never given twice, for `last_name` is the highest that was pruned.
 */
export const names = `
create index oncehook_event_kind on oncehook_event (kind) where kind > 0;
insert or ignore into oncehook_counter (name, value) values ('names_pruned', 0), ('last_name', 0);
`;
