import { expect, test } from 'vitest'

import { openTestDemo } from './support/test-demo.ts'

test('[DM13] the page can use its socket, a worklet and its own blobs, and nothing from other origins', async () => {
  await using testDemo = await openTestDemo()
  const page = await testDemo.openPage()
  const allowed = await page.evaluate(async () => {
    const socket = new WebSocket(`ws://${location.host}/live`)
    const opens = await new Promise((resolve) => {
      socket.addEventListener('open', () => resolve(true))
      socket.addEventListener('error', () => resolve(false))
    })
    socket.close()
    // Any script of the page works: the policy blocks it before the browser parses it as a worklet.
    const script = document.querySelector('script[src]')?.getAttribute('src') ?? ''
    const blocked: string[] = []
    document.addEventListener('securitypolicyviolation', (event) =>
      blocked.push(event.effectiveDirective),
    )
    await new OfflineAudioContext(1, 1, 16_000).audioWorklet
      .addModule(script)
      .catch(() => undefined)
    const canvas = document.createElement('canvas')
    const picture = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve))
    const image = new Image()
    image.src = URL.createObjectURL(picture ?? new Blob())
    await image.decode()
    return { opens, blocked }
  })
  expect(allowed).toEqual({ opens: true, blocked: [] })
  const refused = await page.evaluate(
    () =>
      new Promise<string[]>((resolve) => {
        const blocked: string[] = []
        document.addEventListener('securitypolicyviolation', ({ effectiveDirective }) => {
          blocked.push(effectiveDirective)
          if (blocked.length === 2) resolve(blocked)
        })
        try {
          new WebSocket('ws://127.0.0.1:9/live').close()
        } catch {
          // Some browsers throw here, others only dispatch the event.
        }
        fetch('http://127.0.0.1:9/').catch(() => undefined)
      }),
  )
  expect(refused).toEqual(['connect-src', 'connect-src'])
})
