import type { FinishReason as GeminiFinishReason } from '@google/genai'

import type { FinishReason } from '../../protocol/chunk.ts'

const FINISH_REASONS: Record<`${GeminiFinishReason}`, FinishReason> = {
  FINISH_REASON_UNSPECIFIED: 'stop',
  STOP: 'stop',
  CONTINUATION: 'other',
  MAX_TOKENS: 'length',
  SAFETY: 'content-filter',
  RECITATION: 'content-filter',
  LANGUAGE: 'content-filter',
  BLOCKLIST: 'content-filter',
  PROHIBITED_CONTENT: 'content-filter',
  SPII: 'content-filter',
  IMAGE_SAFETY: 'content-filter',
  IMAGE_PROHIBITED_CONTENT: 'content-filter',
  IMAGE_RECITATION: 'content-filter',
  MALFORMED_FUNCTION_CALL: 'error',
  UNEXPECTED_TOOL_CALL: 'error',
  TOO_MANY_TOOL_CALLS: 'error',
  NO_IMAGE: 'error',
  IMAGE_OTHER: 'other',
  OTHER: 'other',
}

/** Maps Gemini's finish reason to one that clients know. Returns `other` for an unknown reason (CH8). */
export function readFinishReason(reason: string): FinishReason {
  return Object.hasOwn(FINISH_REASONS, reason)
    ? FINISH_REASONS[reason as keyof typeof FINISH_REASONS]
    : 'other'
}

/** Whether an ADK `errorCode` is a finish reason. ADK reports every finish reason except STOP as an error. */
export function isFinishReason(errorCode: string): boolean {
  return Object.hasOwn(FINISH_REASONS, errorCode)
}
