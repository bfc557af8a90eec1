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
  if (getFunctionCalls(event).some(isCallOfAnother)) return false
  const hasOutput =
    parts.length > 0 || event.usageMetadata !== undefined || event.outputTranscription !== undefined
  return hasOutput || event.errorCode !== undefined
}

/** Whether ADK made a call, or the bridge for a tool that is a node. */
function isCallOfAnother(call: FunctionCall): boolean {
  return isAdkRequest(call) || isToolNodeCall(call.id)
}
