# Prepares a machine of GitHub for tests/real_windows: accounts, Defender, WinRM over HTTP and HTTPS, and OpenSSH. Leaves the
# certificate in .work\windows.pem; .work\key.pub is the key of the controller. The machine is thrown away afterwards.
$ErrorActionPreference = 'Stop'

# An administrator, and an account without rights that may log on by WinRM, as a service account for monitoring does.
$password = "Kw1-$([Guid]::NewGuid())"
Write-Output "::add-mask::$password"
$secret = ConvertTo-SecureString $password -AsPlainText -Force
New-LocalUser -Name kubewin -Password $secret | Out-Null
New-LocalUser -Name kubewin-plain -Password $secret | Out-Null
Add-LocalGroupMember -Group 'Administrators' -Member kubewin
Add-LocalGroupMember -Group 'Remote Management Users' -Member kubewin-plain
Add-Content $env:GITHUB_ENV "KUBEWIN_WINDOWS_USER=kubewin"
Add-Content $env:GITHUB_ENV "KUBEWIN_WINDOWS_PASSWORD=$password"

# Without it a local account is no administrator from outside (Microsoft, "User Account Control and remote restrictions").
$policies = 'HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\Policies\System'
Set-ItemProperty $policies -Name LocalAccountTokenFilterPolicy -Value 1 -Type DWord

# The image switches Defender off and excludes its drives (actions/runner-images, Configure-WindowsDefender.ps1).
try {
  Remove-MpPreference -ExclusionPath 'C:\', 'D:\'
  Set-MpPreference -DisableRealtimeMonitoring $false -DisableBehaviorMonitoring $false -DisableIOAVProtection $false
} catch {
  Write-Output "::warning::Defender cannot be switched on: $_"
}
$scans = (Get-MpComputerStatus).RealTimeProtectionEnabled
Write-Output "::notice::Defender's real-time protection: $scans; UAC: $((Get-ItemProperty $policies).EnableLUA)"

Enable-PSRemoting -SkipNetworkProfileCheck -Force | Out-Null
$certificate = New-SelfSignedCertificate -Subject 'CN=127.0.0.1' -CertStoreLocation Cert:\LocalMachine\My `
  -TextExtension '2.5.29.17={text}IPAddress=127.0.0.1&DNS=localhost'
Get-ChildItem WSMan:\localhost\Listener | Where-Object { $_.Keys -contains 'Transport=HTTPS' } | Remove-Item -Recurse -Force
New-Item -Path WSMan:\localhost\Listener -Transport HTTPS -Address * -CertificateThumbPrint $certificate.Thumbprint -Force | Out-Null
$text = [Convert]::ToBase64String($certificate.RawData, 'InsertLineBreaks')
Set-Content .work\windows.pem -Encoding ascii "-----BEGIN CERTIFICATE-----`n$text`n-----END CERTIFICATE-----"

if (-not (Get-Service sshd -ErrorAction SilentlyContinue)) {
  Add-WindowsCapability -Online -Name OpenSSH.Server~~~~0.0.1.0 | Out-Null
}
# Windows Server 2025 has it, and may have it disabled.
Set-Service sshd -StartupType Manual
Start-Service sshd
$keys = "$env:ProgramData\ssh\administrators_authorized_keys"
Copy-Item .work\key.pub $keys
icacls.exe $keys /inheritance:r /grant '*S-1-5-18:F' /grant '*S-1-5-32-544:F'
if ($LASTEXITCODE) { throw "icacls.exe ended with $LASTEXITCODE" }
