/** Reads a feed up to the first event that matches. Returns all events. */
export async function readUntil(
  response: Response,
  matches: (event: Record<string, unknown>, seen: readonly Record<string, unknown>[]) => boolean,
) {
  const seen: Record<string, unknown>[] = []
  let text = ''
  const decoder = new TextDecoder()
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true })
    const frames = text.split('\n\n')
    text = frames.pop() ?? ''
    for (const frame of frames.filter((line) => line.startsWith('data: '))) {
      const event = JSON.parse(frame.slice(6)) as Record<string, unknown>
      seen.push(event)
      if (matches(event, seen)) return seen
    }
  }
  return seen
}
