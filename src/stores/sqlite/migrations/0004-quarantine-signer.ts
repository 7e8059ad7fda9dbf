/**
 * Schema 4: which secret signed a quarantined body, for the quota of each. Null in rows of an older version, which count for every secret
 * of their slot and scope. The index of schema 1 stays for older versions.
 */
export const quarantineSigner = `
alter table oncehook_quarantine add column signer text;
create index oncehook_quarantine_signer on oncehook_quarantine (signer, slot, scope, bytes) where state = 0;
`;
