import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { test } from 'node:test'

import { Chat } from '@ai-sdk/react'
import { attachChat, sseTransport } from 'adk-stream-protocol/client'
import type { AdkUIMessage } from 'adk-stream-protocol/client'
import { createBridge } from 'adk-stream-protocol/server'
import { isToolUIPart } from 'ai'
import { startEmulator } from 'gemini-emulator'

import { agent } from './agent.ts'
import { approvals } from './approvals.ts'

test('a payment waits for its approval, a small one does not', async () => {
  await using emulator = await startEmulator()
  process.env.GOOGLE_GEMINI_BASE_URL = emulator.baseUrl
  process.env.GOOGLE_API_KEY = 'any'
  await using bridge = createBridge({ agent, approvals, authenticate: () => ({ id: 'alice' }) })
  const transport = sseTransport({
    url: 'http://bridge',
    fetch: (input, init) => bridge.fetch(new Request(input, init)),
  })
  const answers = new EventEmitter()
  const onFinish = () => answers.emit('finished')
  const chat = new Chat<AdkUIMessage>({ id: 'chat', transport, onFinish })
  const attached = attachChat(chat, transport)
  const call = () => chat.messages.at(-1)?.parts.find(isToolUIPart)
  // A script in the prompt says what the model does.
  const pay = (amount: number) =>
    chat.sendMessage({
      text: `[[call process_payment {"amount": ${amount}, "recipient": "Alice"}]] [[then]] [[say Done.]]`,
    })

  await pay(30)
  const asked = call()
  assert(asked?.state === 'approval-requested')

  const answered = once(answers, 'finished')
  await attached.approve(asked.approval.id)
  await answered
  assert.deepEqual(call()?.output, { success: true, amount: 30, recipient: 'Alice' })

  // What the model received.
  const { body } = emulator.requests.at(-1) ?? {}
  assert.match(JSON.stringify(body), /"success":true/)

  await pay(5)
  assert.equal(call()?.state, 'output-available')
})
