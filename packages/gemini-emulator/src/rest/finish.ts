/** How a candidate ends: the fields its last chunk has besides content. */
export interface Finish {
  readonly fields: Readonly<Record<string, unknown>>
  /** Whether the last chunk may carry content; a candidate that was stopped for its content has none. */
  readonly withContent: boolean
}

export interface Source {
  readonly uri: string
  readonly title: string
}

export function finishOf(reason: string, sources: readonly Source[], text: string): Finish {
  const blocked = BLOCKED.has(reason)
  return {
    withContent: !blocked && !WITHOUT_CONTENT.has(reason),
    fields: {
      finishReason: reason,
      ...(blocked && { safetyRatings: safetyRatings(reason) }),
      ...(sources.length > 0 && { groundingMetadata: groundingMetadata(sources, text) }),
    },
  }
}

/** Ratings that explain why something was held back. */
export function safetyRatings(reason: string) {
  return HARMS.map((category) =>
    reason === 'SAFETY' && category === 'HARM_CATEGORY_DANGEROUS_CONTENT'
      ? { category, probability: 'HIGH', blocked: true }
      : { category, probability: 'NEGLIGIBLE' },
  )
}

function groundingMetadata(sources: readonly Source[], text: string) {
  return {
    webSearchQueries: sources.map(({ title }) => title),
    groundingChunks: sources.map(({ uri, title }) => ({ web: { uri, title } })),
    // Gemini counts segments in bytes of UTF-8.
    groundingSupports: [
      {
        segment: { endIndex: Buffer.byteLength(text), text },
        groundingChunkIndices: sources.map((_, index) => index),
      },
    ],
  }
}

const BLOCKED: ReadonlySet<string> = new Set([
  'SAFETY',
  'PROHIBITED_CONTENT',
  'BLOCKLIST',
  'SPII',
  'RECITATION',
  'IMAGE_SAFETY',
])

const WITHOUT_CONTENT: ReadonlySet<string> = new Set([
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'LANGUAGE',
  'OTHER',
])

const HARMS = [
  'HARM_CATEGORY_HARASSMENT',
  'HARM_CATEGORY_HATE_SPEECH',
  'HARM_CATEGORY_SEXUALLY_EXPLICIT',
  'HARM_CATEGORY_DANGEROUS_CONTENT',
] as const
