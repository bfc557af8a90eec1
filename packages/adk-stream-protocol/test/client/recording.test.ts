import { describe, expect, test } from 'vitest'

import { Player, readRecording, Recorder } from '../../src/client/index.ts'
import { ApprovingChat } from '../approvals/support/approving-chat.ts'
import { Office } from '../approvals/support/office.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { ClientPage, versions, type Version } from './support/client-page.ts'

async function record(version: Version): Promise<{ jsonl: string; messages: unknown }> {
  await using office = await Office.open()
  const recorder = new Recorder()
  const live = { hold: false, onFrame: recorder.onFrame }
  await using page = new ClientPage({ url: office.url, version, live })
  recorder.start()
  const transport = recorder.record(page.transport)
  const chat = new ApprovingChat(version.open({ id: 'chat-1', messages: [], transport }), {})
  await chat.send('[[say One.]]')
  await chat.send(`[[say Let me see.]]${callPayment(5)}`)
  return { jsonl: recorder.toJsonl(), messages: assistants(chat) }
}

function assistants(chat: ApprovingChat): unknown {
  return JSON.parse(JSON.stringify(chat.messages.filter(({ role }) => role === 'assistant')))
}

function stepThrice(player: Player): void {
  for (let step = 0; step < 3; step += 1) player.step()
}

describe.each(versions)('$name', (version) => {
  test.each(['fast', 'real-time'] as const)(
    '[CL14] a recording played %s shows the same',
    async (pace) => {
      const { jsonl, messages } = await record(version)
      const transport = new Player({ recording: jsonl, pace })
      const chat = new ApprovingChat(version.open({ id: 'other', messages: [], transport }), {})
      await chat.send('anything')
      await chat.send('anything')
      expect(assistants(chat)).toEqual(messages)
      expect(transport.left).toBe(0)
      const frames = readRecording(jsonl).flatMap((line) =>
        line.type === 'frame' ? [line.direction] : [],
      )
      expect(new Set(frames)).toEqual(new Set(['in', 'out']))
      await chat.send('once more')
      expect(chat.error).toMatchObject({ code: 'nothing-new' })
    },
  )

  test('[CL14] a recording played by steps goes on when it is told to', async () => {
    const { jsonl } = await record(version)
    const transport = new Player({ recording: jsonl, pace: 'step' })
    const chat = new ApprovingChat(version.open({ id: 'other', messages: [], transport }), {})
    const played = chat.send('anything')
    // start, start-step, text-start, the text
    stepThrice(transport)
    await chat.until(({ status }) => status === 'streaming')
    expect(chat.text).toBe('')
    transport.step()
    await chat.untilShown('One.')
    expect(chat.status).toBe('streaming')
    stepThrice(transport)
    await played
    expect(chat.status).toBe('ready')
  })
})

test('[CL14] a recorder keeps nothing before it is started, and no more than its lines', () => {
  const recorder = new Recorder({ maxLines: 3 })
  recorder.onFrame('in', { type: 'hello' })
  expect(recorder.toJsonl()).toBe('')
  recorder.start()
  for (const count of [1, 2, 3, 4, 5]) recorder.onFrame('in', { count })
  expect(readRecording(recorder.toJsonl())).toMatchObject(
    [3, 4, 5].map((count) => ({ frame: { count } })),
  )
  expect(recorder.dropped).toBe(2)
  recorder.stop()
  recorder.onFrame('out', {})
  expect(readRecording(recorder.toJsonl())).toHaveLength(3)
})
