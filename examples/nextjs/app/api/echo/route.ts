/** `/api/echo`: an ordinary JSON route next to the webhooks. */
export const runtime = "nodejs";

export async function POST(request: Request): Promise<Response> {
  return Response.json(await request.json());
}
