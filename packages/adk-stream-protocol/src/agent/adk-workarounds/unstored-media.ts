import type { Event } from '@google/adk'

const UNSTORED = /^(?:image|audio|video)\//i

/** Whether ADK 2.0.0 does not store an event of a live run because it contains media. */
export function isUnstoredMedia({ content, partial = false }: Event): boolean {
  return !partial && content?.parts?.some(isUnstoredPart) === true
}

function isUnstoredPart({ inlineData }: { inlineData?: { mimeType?: string } }): boolean {
  return UNSTORED.test(inlineData?.mimeType ?? '')
}
