import type { Event } from '@google/adk'

import { isToolNodeCall } from './tool-node-calls.ts'

/** Whether the model wrote an event, as opposed to a user, a tool or ADK. */
export function isModelOutput(event: Event): boolean {
  if (event.author === undefined || event.author === 'user') return false
  const parts = event.content?.parts ?? []
  if (parts.some(({ functionResponse }) => functionResponse !== undefined)) return false
  // ADK asks for confirmations, input and credentials with calls of its own.
  if (parts.some(({ functionCall }) => functionCall?.name?.startsWith('adk_request_') === true))
    return false
  if (parts.some(({ functionCall }) => isToolNodeCall(functionCall?.id))) return false
  const hasOutput =
    parts.length > 0 || event.usageMetadata !== undefined || event.outputTranscription !== undefined
  return hasOutput || event.errorCode !== undefined
}
