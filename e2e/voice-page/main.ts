import { type LiveEvent, webSocketTransport } from 'adk-stream-protocol/client'
import { Voice, type VoiceOptions } from 'adk-stream-protocol/voice'

/** What a test sees of the page. */
export interface VoicePage {
  readonly voice: Voice
  /** The loudest that each side was. */
  readonly loudest: { input: number; output: number }
  /** Whether the newest interruption made the speaker fall silent. How fast it does is tested where time is counted in samples. */
  readonly isSilenced: boolean
  say(text: string): void
}

const transport = webSocketTransport({ url: '/live' })
const mode: VoiceOptions['mode'] =
  location.search === '?push-to-talk' ? 'push-to-talk' : 'hands-free'
const voice = new Voice({ transport, chatId: 'voice-chat', mode })
const loudest = { input: 0, output: 0 }
voice.onLevel(({ input, output }) => {
  loudest.input = Math.max(loudest.input, input)
  loudest.output = Math.max(loudest.output, output)
})

let isInterrupted = false
let isSilenced = false
const interrupted = (): void => {
  if (voice.playback.playing) isInterrupted = true
}
voice.onLevel(() => {
  if (!isInterrupted || voice.playback.playing) return
  isSilenced = true
  isInterrupted = false
})
transport.watch('voice-chat', ({ type }: LiveEvent) => {
  if (type === 'interrupted') interrupted()
})

const onClick = (id: string, act: () => void): void =>
  document.getElementById(id)?.addEventListener('click', act)
onClick('start', () => void voice.start())
onClick('stop', () => voice.stop())
onClick('interrupt', () => {
  interrupted()
  voice.interrupt()
})

const page: VoicePage = {
  voice,
  loudest,
  get isSilenced() {
    return isSilenced
  },
  say: (text) => transport.sendText('voice-chat', text),
}
Object.assign(window, { page })
