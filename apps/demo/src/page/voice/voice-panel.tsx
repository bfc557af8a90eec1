import { type AdkChat, useVoice, VoiceStage } from 'adk-stream-protocol/react'
import type { Voice } from 'adk-stream-protocol/voice'
import { Captions, MessageSquare } from 'lucide-react'

import { useDemo } from '../demo/use-demo.ts'
import { useLabels } from '../i18n/language.tsx'
import { useCaptions } from '../settings/captions.ts'
import { useMode } from '../settings/mode.ts'
import { MicrophoneChoice } from './microphone-choice.tsx'

interface VoicePanelProps {
  readonly voice: Voice
  readonly chat: AdkChat
}

/** The voice of a chat above the message input, with captions, the microphone and the way back to the chat. */
export function VoicePanel({ voice, chat }: VoicePanelProps) {
  const { state } = useVoice(voice)
  const [captions, chooseCaptions] = useCaptions()
  const { voice: labels } = useLabels().shell
  const [, chooseMode] = useMode()
  const demo = useDemo()
  const isOn = state !== 'off' && state !== 'asking'
  return (
    <div className="talk column-width">
      <VoiceStage voice={voice} chat={chat} captions={captions === 'on'}>
        {isOn && (
          <button
            type="button"
            className="icon-button"
            aria-label={labels.captions}
            title={labels.captions}
            aria-pressed={captions === 'on'}
            onClick={() => chooseCaptions(captions === 'on' ? 'off' : 'on')}
          >
            <Captions aria-hidden="true" />
          </button>
        )}
        {isOn && <MicrophoneChoice voice={voice} />}
        {/* Where the top bar has no room for the mode. */}
        <button
          type="button"
          className="icon-button back-to-chat"
          aria-label={labels.backToChat}
          title={labels.backToChat}
          onClick={() => chooseMode('sse')}
        >
          <MessageSquare aria-hidden="true" />
        </button>
      </VoiceStage>
      {isOn && demo?.emulated && <p className="fine talk-note">{labels.emulated}</p>}
    </div>
  )
}
