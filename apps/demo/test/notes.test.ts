import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import { builtPage } from '../../../test/support/built-page.ts'
import { startDemo } from '../src/server/start-demo.ts'
import { temporaryDirectory } from '../../../test/support/temporary-directory.ts'

beforeAll(builtPage)

const Questions = z.object({
  approvals: z.tuple([z.looseObject({ id: z.string(), kind: z.string(), hint: z.string() })]),
})

const CASES = [
  {
    language: 'en',
    request: 'Write a note for me',
    hint: 'What should the note say?',
    decision: { approved: false },
    reply: 'so I saved no note.',
    saved: [],
  },
  {
    language: 'ja',
    request: '新しいメモを書いて',
    hint: 'メモの内容を入力してください。',
    decision: { approved: true, payload: { title: '牛乳', kind: 'shopping' } },
    reply: 'メモ「牛乳」を保存しました。',
    saved: ['牛乳'],
  },
]

test.each(CASES)(
  '[DM650] the notes server asks with a form in $language; the answer is $decision',
  async ({ request, hint, decision, reply, saved }) => {
    await using data = await temporaryDirectory()
    await using demo = await startDemo({ PORT: '0', DATA_DIR: data.path })
    const page = await fetch(demo.url)
    const cookie = page.headers.get('set-cookie')?.split(';')[0] ?? ''
    const headers = { cookie, 'content-type': 'application/json' }
    const post = (path: string, body: unknown) =>
      fetch(demo.url + path, { method: 'POST', headers, body: JSON.stringify(body) })

    const message = { id: 'message-1', role: 'user', parts: [{ type: 'text', text: request }] }
    const response = await post('/stream', { id: 'chat-1', messages: [message] })
    expect(await response.text()).toContain('"toolName":"mcp_elicitation"')
    const waiting = await fetch(`${demo.url}/approvals`, { headers })
    const [question] = Questions.parse(await waiting.json()).approvals
    expect(question).toMatchObject({ kind: 'elicitation', hint })
    expect((await post(`/approvals/${question.id}`, decision)).status).toBe(200)

    const read = async () => (await fetch(`${demo.url}/chats/chat-1/messages`, { headers })).text()
    await expect.poll(read).toContain(reply)
    expect(readNewTitles(join(data.path, 'notes.json'))).toEqual(saved)
  },
)

/** The titles of the notes after the three samples. The file exists when a note has been saved. */
function readNewTitles(file: string): unknown[] {
  if (!existsSync(file)) return []
  const notes = z
    .array(z.object({ title: z.string() }))
    .parse(JSON.parse(readFileSync(file, 'utf8')))
  return notes.slice(3).map(({ title }) => title)
}
