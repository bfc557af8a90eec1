/** Starts the server and the page for development. */
import './emulate.ts'
import './server.ts'

import { createServer } from 'vite'

const vite = await createServer()
await vite.listen()
vite.printUrls()
