// Row "us": the whole bridge as its users run it, with its cookie, its turn log and a database in a file.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createBridge } from 'adk-stream-protocol/server'
import { openSqliteStore } from 'adk-stream-protocol/store'

import { scriptedAgent } from '../scripted-model.ts'
import { serve } from './serve.ts'

const directory = mkdtempSync(join(tmpdir(), 'adk-stream-protocol-bench-'))
process.on('exit', () => rmSync(directory, { recursive: true }))

const store = await openSqliteStore({ path: join(directory, 'chats.db') })
await serve(createBridge({ agent: scriptedAgent(), store }).node)
