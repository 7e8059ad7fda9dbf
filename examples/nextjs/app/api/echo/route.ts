export const runtime = "nodejs";

/** An ordinary JSON route beside the webhooks. */
export async function POST(request: Request): Promise<Response> {
  return Response.json(await request.json());
}
