/**
 * Schema 5: which secret signed a quarantined body, for the quota of each. Null in rows of an older version, which count for every secret
 * of their slot and scope. The index of schema 1 stays for older versions.
 */
export const quarantineSigner = `
alter table quarantine add column signer text;
create index quarantine_signer on quarantine (signer, slot, scope, bytes) where state = 0;
`;
