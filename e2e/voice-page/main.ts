import { type LiveEvent, webSocketTransport } from 'adk-stream-protocol/client'
import { Voice, type VoiceOptions } from 'adk-stream-protocol/voice'

/** The global object through which tests use the page. */
export interface VoicePage {
  readonly voice: Voice
  /** The highest level of the microphone and of the speaker. */
  readonly loudest: { input: number; output: number }
  /** Whether the playback stopped after the last interruption. Other tests measure how fast, in samples. */
  readonly isSilenced: boolean
  sendText(text: string): void
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
const noteInterruption = (): void => {
  if (voice.playback.playing) isInterrupted = true
}
voice.onLevel(() => {
  if (!isInterrupted || voice.playback.playing) return
  isSilenced = true
  isInterrupted = false
})
transport.watch('voice-chat', ({ type }: LiveEvent) => {
  if (type === 'interrupted') noteInterruption()
})

const onClick = (id: string, run: () => void): void =>
  document.getElementById(id)?.addEventListener('click', run)
onClick('start', () => void voice.start())
onClick('stop', () => voice.stop())
onClick('interrupt', () => {
  noteInterruption()
  voice.interrupt()
})

const page: VoicePage = {
  voice,
  loudest,
  get isSilenced() {
    return isSilenced
  },
  sendText: (text) => transport.sendText('voice-chat', text),
}
Object.assign(window, { page })
