import type { Responder } from 'gemini-emulator'
import { firstOf, scriptResponder } from 'gemini-emulator'

import type { TestBridge } from '../../approvals/support/test-bridge.ts'
import { type LiveTestBridgeOptions, openLiveTestBridge } from './live-test-bridge.ts'

const BLOCKING_MODEL = 'gemini-3.1-flash-live-preview'

/** Repeats the results that the model receives as text. */
const repeatResults: Responder = ({ contents }) => {
  const text = contents.at(-1)?.parts?.[0]?.text ?? ''
  return text.startsWith('[Result of') ? [{ type: 'say', text: `Told ${text}` }] : undefined
}

const OK: Responder = () => [{ type: 'say', text: 'OK.' }]

/** A bridge with a model that waits for its calls. */
export function openParking(options: LiveTestBridgeOptions = {}): Promise<TestBridge> {
  return openLiveTestBridge({
    liveModel: BLOCKING_MODEL,
    respond: firstOf(repeatResults, scriptResponder, OK),
    ...options,
  })
}

/** What the model received of calls: function responses, and results as text. */
export function receivedOf(testBridge: TestBridge) {
  const frames = testBridge.emulator.live.sessions.flatMap(({ received }) => [...received])
  const responses = frames.flatMap((frame) => {
    const { functionResponses = [] } = Object(frame['toolResponse'] ?? {}) as {
      functionResponses?: { id: string; response: Record<string, unknown> }[]
    }
    return functionResponses
  })
  const texts = frames.flatMap((frame) => {
    const { text = '' } = Object(frame['realtimeInput'] ?? {}) as { text?: string }
    return text.startsWith('[Result of') ? [text] : []
  })
  return { responses, texts }
}

export async function untilShown(testBridge: TestBridge, text: string): Promise<void> {
  await testBridge.page().untilMessages((messages) => JSON.stringify(messages).includes(text))
}

export async function toolStates(testBridge: TestBridge): Promise<unknown[]> {
  const messages = await testBridge.page().messages()
  return messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'tool-process_payment' ? [part['state']] : [])),
  )
}
