import type { Event } from '@google/adk'
import { getFunctionCalls } from '@google/adk'
import type { FunctionCall } from '@google/genai'

import { isAdkRequest } from '../tool-call.ts'
import { isToolNodeCall } from './tool-node-calls.ts'

/** Whether the model wrote an event, as opposed to a user, a tool or ADK. */
export function isModelOutput(event: Event): boolean {
  if (event.author === undefined || event.author === 'user') return false
  const parts = event.content?.parts ?? []
  if (parts.some(({ functionResponse }) => functionResponse !== undefined)) return false
  // ADK makes these calls, and the bridge makes those of tools that are nodes.
  const isMadeForModel = (call: FunctionCall): boolean =>
    isAdkRequest(call) || isToolNodeCall(call.id)
  if (getFunctionCalls(event).some(isMadeForModel)) return false
  const hasOutput =
    parts.length > 0 || event.usageMetadata !== undefined || event.outputTranscription !== undefined
  return hasOutput || event.errorCode !== undefined
}
