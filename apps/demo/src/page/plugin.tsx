import './demo.css'

import type { StudioPlugin } from 'adk-stream-protocol-studio/page'
import { DefaultChatTransport } from 'ai'

import { ApproverDialog, ApproverMark, ApproverNote } from './approver.tsx'
import { BROWSER_TOOLS } from './browser-tools.ts'
import { describeCall } from './describe-call.ts'
import { LABELS } from './i18n/use-demo-labels.ts'
import { MusicChoice, MusicControl } from './music/music-controls.tsx'
import { music } from './music/music.ts'
import { renderCall } from './weather-card.tsx'

/** What the demo adds to the page: its words and cards, music, Gemini without the agent, and the second approver. */
export const plugin: StudioPlugin = {
  texts: { en: LABELS.en.page, ja: LABELS.ja.page },
  describeCall,
  renderCall,
  browserTools: BROWSER_TOOLS,
  modes: [
    {
      name: 'direct',
      // The tools write their results in the language of the page.
      transport: new DefaultChatTransport({
        api: '/direct',
        headers: () => ({ 'accept-language': document.documentElement.lang }),
      }),
      texts: { en: LABELS.en.direct, ja: LABELS.ja.direct },
    },
  ],
  slots: {
    'top-bar': MusicControl,
    settings: MusicChoice,
    model: ApproverNote,
    approvals: ApproverMark,
    dialogs: ApproverDialog,
  },
  onSpeaking: (isSpeaking) => (isSpeaking ? music.duck() : music.unduck()),
}
