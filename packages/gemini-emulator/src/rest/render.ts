import type { Part } from '../wire/content.ts'
import type { TokenCount } from '../wire/text.ts'

/** The fields that all chunks of a response share. */
export interface ResponseFields {
  readonly model: string
  readonly responseId: string
  readonly prompt: TokenCount
  /** Tokens of the cached content. 0 if there is none. */
  readonly cachedTokens: number
}

export interface Candidate {
  readonly parts: readonly Part[]
  readonly tokens: OutputTokens
  readonly finish?: Finish
}

/** Tokens produced so far, including this chunk. */
export interface OutputTokens {
  readonly candidates: number
  readonly thoughts: number
}

/** Renders the `GenerateContentResponse` messages of one response as JSON. */
export interface Renderer {
  candidate(candidate: Candidate): string
  blocked(reason: string, hasUsage: boolean): string
}

/** Serialises the shared fields once, so that each chunk needs only one small `JSON.stringify`. */
export function createRenderer(fields: ResponseFields): Renderer {
  const promptCount = fields.prompt.total + fields.cachedTokens
  const details = JSON.stringify(fields.prompt.details)
  const cached = fields.cachedTokens > 0 ? `,"cachedContentTokenCount":${fields.cachedTokens}` : ''
  const tail = `,"modelVersion":${JSON.stringify(fields.model)},"responseId":${JSON.stringify(fields.responseId)}}`

  const usage = ({ candidates, thoughts }: OutputTokens) =>
    `"usageMetadata":{"promptTokenCount":${promptCount}${candidates > 0 ? `,"candidatesTokenCount":${candidates}` : ''},"totalTokenCount":${promptCount + candidates + thoughts}${cached},"promptTokensDetails":${details}${thoughts > 0 ? `,"thoughtsTokenCount":${thoughts}` : ''}}`

  return {
    candidate({ parts, tokens, finish }) {
      const content =
        parts.length > 0 ? `"content":{"parts":${JSON.stringify(parts)},"role":"model"},` : ''
      const ending = finish ? `${JSON.stringify(finish.fields).slice(1, -1)},` : ''
      return `{"candidates":[{${content}${ending}"index":0}],${usage(tokens)}${tail}`
    },
    blocked(reason, hasUsage) {
      const feedback = { blockReason: reason, safetyRatings: safetyRatings(reason) }
      const counted = hasUsage ? `,${usage({ candidates: 0, thoughts: 0 })}` : ''
      return `{"promptFeedback":${JSON.stringify(feedback)}${counted}${tail}`
    },
  }
}

/** The end of a candidate: the fields of its last chunk besides content. */
export interface Finish {
  readonly fields: Readonly<Record<string, unknown>>
  /** Whether the last chunk may have content. A candidate stopped for its content has none. */
  readonly withContent: boolean
}

export interface Source {
  readonly uri: string
  readonly title: string
}

export function createFinish(reason: string, sources: readonly Source[], text: string): Finish {
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

/** Ratings that explain a block. */
function safetyRatings(reason: string) {
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
    // Gemini counts segments in UTF-8 bytes.
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
