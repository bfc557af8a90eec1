// Row R, the limit of the machine: node:http writes one prepared frame per macrotask.
import { produced, readScript, tokenOf } from '../script.ts'
import { type Handler, deltaFrame, newestText, readChatBody, serve, SSE_HEADERS } from './serve.ts'

const handle: Handler = async (request, response) => {
  const script = readScript(newestText(await readChatBody(request)))
  const frame = deltaFrame(tokenOf(script))
  let left = script.tokens
  const writeNext = (): void => {
    if (response.destroyed) return
    if (left > 0) {
      left -= 1
      produced.tokens += 1
      if (response.write(frame)) setImmediate(writeNext)
      else response.once('drain', writeNext)
    } else if (script.ending === 'end') response.end('data: [DONE]\n\n')
  }
  response.writeHead(200, SSE_HEADERS)
  setImmediate(writeNext)
}

await serve(handle)
