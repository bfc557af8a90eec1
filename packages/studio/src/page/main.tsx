import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'

import { plugin } from '#plugin'

import { App } from './app.tsx'
import { ConversationSettings } from './conversation/conversation-settings.tsx'
import { LanguageProvider } from './i18n/language.tsx'
import { ApprovalLinkPage, takeApprovalLink } from './inbox/approval-link-page.tsx'
import { PluginContext } from './plugin/plugin-context.ts'
import { followTheme } from './settings.ts'

followTheme()
// Before anything else reads or stores the URL.
const link = takeApprovalLink()

const root = document.getElementById('root')
if (root) {
  createRoot(root).render(
    <StrictMode>
      <PluginContext value={plugin}>
        <LanguageProvider>
          <ConversationSettings>
            {link ? <ApprovalLinkPage link={link} /> : <App />}
          </ConversationSettings>
        </LanguageProvider>
      </PluginContext>
    </StrictMode>,
  )
}
