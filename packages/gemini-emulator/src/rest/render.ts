import type { TokenCount } from '../wire/tokens.ts'
import { safetyRatings, type Finish } from './finish.ts'
import type { Spent } from './plan.ts'
import type { Part } from '../wire/content.ts'

export interface ResponseFacts {
  readonly model: string
  readonly responseId: string
  readonly prompt: TokenCount
  /** Tokens of the cached content, 0 if none is used. */
  readonly cachedTokens: number
}

export interface Candidate {
  readonly parts: readonly Part[]
  readonly spent: Spent
  readonly finish?: Finish
}

/** Writes `GenerateContentResponse` messages of one response. */
export interface Renderer {
  candidate(candidate: Candidate): string
  blocked(reason: string): string
}

/** Everything that is the same in each chunk is turned into text once: a chunk costs one small `JSON.stringify`. */
export function createRenderer(facts: ResponseFacts): Renderer {
  const promptCount = facts.prompt.total + facts.cachedTokens
  const details = JSON.stringify(facts.prompt.details)
  const cached = facts.cachedTokens > 0 ? `,"cachedContentTokenCount":${facts.cachedTokens}` : ''
  const tail = `,"modelVersion":${JSON.stringify(facts.model)},"responseId":${JSON.stringify(facts.responseId)}}`

  const usage = ({ candidates, thoughts }: Spent) =>
    `"usageMetadata":{"promptTokenCount":${promptCount}${candidates > 0 ? `,"candidatesTokenCount":${candidates}` : ''},"totalTokenCount":${promptCount + candidates + thoughts}${cached},"promptTokensDetails":${details}${thoughts > 0 ? `,"thoughtsTokenCount":${thoughts}` : ''}}`

  return {
    candidate({ parts, spent, finish }) {
      const content =
        parts.length > 0 ? `"content":{"parts":${JSON.stringify(parts)},"role":"model"},` : ''
      const ending = finish ? `${JSON.stringify(finish.fields).slice(1, -1)},` : ''
      return `{"candidates":[{${content}${ending}"index":0}],${usage(spent)}${tail}`
    },
    blocked(reason) {
      const feedback = { blockReason: reason, safetyRatings: safetyRatings(reason) }
      return `{"promptFeedback":${JSON.stringify(feedback)},${usage({ candidates: 0, thoughts: 0 })}${tail}`
    },
  }
}
