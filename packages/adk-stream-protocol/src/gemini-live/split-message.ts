import type { FunctionCall, LiveServerMessage } from '@google/genai'

/** A message that holds more than content, taken apart. */
export interface SortedMessage {
  /** What ADK is told. */
  readonly forward: LiveServerMessage | undefined
  readonly calls: readonly FunctionCall[]
  /** Calls of tools that the agent does not have: ADK would end the run. */
  readonly unknownCalls: readonly FunctionCall[]
}

/**
 * Calls become parts of the model's turn: ADK 2.0.0 holds a `toolCall` back till the turn is complete, which most models do only
 * after the response. Handles and the announced end of a connection are this connection's own affair; a handle in an ADK event
 * would be stored in the session, where it is a key to the conversation.
 */
export function sortMessage(
  message: LiveServerMessage,
  isTool: (name: string) => boolean,
): SortedMessage {
  const { serverContent, usageMetadata } = message
  const made = message.toolCall?.functionCalls ?? []
  const calls = made.filter(({ name }) => isTool(name ?? ''))
  const unknownCalls = made.filter((call) => !calls.includes(call))
  const callParts = calls.map((functionCall) => ({ functionCall }))
  const content =
    callParts.length === 0
      ? serverContent
      : {
          ...serverContent,
          modelTurn: {
            role: 'model',
            parts: [...(serverContent?.modelTurn?.parts ?? []), ...callParts],
          },
        }
  const forward = {
    ...(content && { serverContent: content }),
    ...(usageMetadata && { usageMetadata }),
  }
  const isEmpty = Object.keys(forward).length === 0
  return { forward: isEmpty ? undefined : toMessage(forward), calls, unknownCalls }
}

/** Whether a message holds nothing but what ADK is to be told as it stands: all audio, text and transcripts do. */
export function isPlain(message: LiveServerMessage): boolean {
  return (
    message.serverContent !== undefined &&
    message.toolCall === undefined &&
    message.toolCallCancellation === undefined &&
    message.sessionResumptionUpdate === undefined &&
    message.goAway === undefined
  )
}

/** Whether the fields that are read by us and by ADK are what they should be. */
export function isWellFormed({ serverContent, toolCall }: LiveServerMessage): boolean {
  const parts: unknown = serverContent?.modelTurn?.parts ?? []
  const calls: unknown = toolCall?.functionCalls ?? []
  return (
    Array.isArray(parts) && parts.every(isObject) && Array.isArray(calls) && calls.every(isObject)
  )
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

/** A server message as the SDK hands it on; its getters are not used by ADK. */
export function toMessage(
  fields: Pick<LiveServerMessage, 'serverContent' | 'usageMetadata'>,
): LiveServerMessage {
  return fields as LiveServerMessage
}
