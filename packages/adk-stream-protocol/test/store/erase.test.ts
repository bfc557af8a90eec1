import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { serve } from '../support/serve.ts'

const WORDS = ['kumquat-said', 'kumquat-answered', 'kumquat-named', 'kumquat-kept']

/** Returns which of the words the files of a database contain. */
function wordsIn(path: string): string[] {
  const files = ['', '-wal', '-shm'].map((suffix) => path + suffix).filter(existsSync)
  const bytes = Buffer.concat(files.map((file) => readFileSync(file)))
  return WORDS.filter((word) => bytes.includes(word))
}

test('[ST12] no file of the database contains text of a deleted chat, while others use it', async () => {
  await using folder = await temporaryDirectory()
  const path = folder.file('s.db')
  await using store = await openSqliteStore({ path })
  await using other = await openSqliteStore({ path })
  await using server = await serve({ store, authenticate: () => ({ id: 'hanako' }) })
  const browser = server.browser()
  const said = `[[say kumquat-answered]] kumquat-said ${'so '.repeat(4_000)}`
  await (await browser.say(said)).text()
  await (await browser.say('[[say Next.]]', 'chat-2')).text()
  await browser.fetch(`${server.url}/chats/chat-1`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ title: 'kumquat-named' }),
  })
  const key = { appName: 'adk-stream-protocol', userId: 'hanako', sessionId: 'chat-1' }
  const session = await other.sessions.getSession(key)
  expect(JSON.stringify(session)).toContain('kumquat-said')
  await other.sessions.createSession({ ...key, sessionId: 'chat-3', state: { a: 'kumquat-kept' } })
  await other.sessions.deleteSession({ ...key, sessionId: 'chat-3' })
  expect(wordsIn(path)).toEqual(['kumquat-said', 'kumquat-answered', 'kumquat-named'])
  expect((await browser.delete()).status).toBe(204)
  expect(wordsIn(path)).toEqual([])
  expect((await browser.messages('chat-2')).messages).toHaveLength(2)
})
