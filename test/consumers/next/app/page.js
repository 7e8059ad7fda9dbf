// A page, so that there is one.
export default function Page() {
  return <p>oncehook</p>;
}
