/** The only page. */
export default function Page() {
  return <p>Webhooks are received at /webhooks.</p>;
}
