// Row "us": the bridge as applications run it, with a cookie, the turn log and a database file.
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
