#!/bin/sh
# Interpreters to try wheels in that this machine does not run itself, from Debian's packages: sh release/pythons.sh OUT
#
# OUT/aarch64/python runs Debian's python3.11 for arm64 by qemu-user. OUT/musl/python is Debian's source of the same
# version, built by musl-gcc. `sh release/pythons.sh OUT musl` makes one of them. Needs apt-get, qemu-user-static,
# musl-tools and make; changes nothing outside OUT.
set -eu
out=$(mkdir -p "$1" && cd "$1" && pwd)

private_apt() {  # NAME ARCHITECTURE KIND: an apt of its own, with lists and sources below OUT
    root="$out/apt-$1"
    mkdir -p "$root/state/lists/partial" "$root/cache/archives/partial" "$root/parts"
    key=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "$3 [signed-by=$key] http://deb.debian.org/debian bookworm main" > "$root/sources.list"
    : > "$root/state/status"
    cat > "$root/apt.conf" << END
APT::Architecture "$2";
APT::Architectures { "$2"; };
APT::Sandbox::User "root";
Dir::State "$root/state";
Dir::State::status "$root/state/status";
Dir::Cache "$root/cache";
Dir::Etc::SourceList "$root/sources.list";
Dir::Etc::SourceParts "$root/parts";
END
    APT_CONFIG="$root/apt.conf"
    export APT_CONFIG
    apt-get -qq update
}

aarch64() {
    private_apt aarch64 arm64 deb
    mkdir -p "$out/aarch64/debs" "$out/aarch64/root"
    cd "$out/aarch64/debs"
    apt-get -qq download libc6 libgcc-s1 libstdc++6 libpython3.11-minimal libpython3.11-stdlib python3.11-minimal python3.11 \
        zlib1g libssl3 libexpat1 libffi8 libbz2-1.0 liblzma5 libsqlite3-0 libcrypt1 libncursesw6 libtinfo6 libreadline8 \
        libuuid1 libtirpc3 libnsl2 libdb5.3 libgssapi-krb5-2 libkrb5-3 libk5crypto3 libkrb5support0 libcom-err2 libkeyutils1
    for package in *.deb; do dpkg -x "$package" ../root; done
    printf '#!/bin/sh\nexec qemu-aarch64-static -L %s %s "$@"\n' "$out/aarch64/root" "$out/aarch64/root/usr/bin/python3.11" \
        > "$out/aarch64/python"
    chmod +x "$out/aarch64/python"
}

musl() {
    private_apt musl amd64 deb-src
    mkdir -p "$out/musl/source" && cd "$out/musl/source"
    apt-get -qq source --download-only python3.11 zlib libffi
    for archive in *.orig.tar.*; do tar xf "$archive"; done
    where="$out/musl/prefix"
    (cd zlib-* && CC=musl-gcc ./configure --static --prefix="$where" && make -s CFLAGS="-O2 -fPIC" install)
    kernel="-idirafter /usr/include -idirafter /usr/include/x86_64-linux-gnu"
    (cd libffi-* && CC="musl-gcc $kernel" ./configure --disable-shared --with-pic --disable-docs --prefix="$where" &&
        make -s install)
    cd Python-3.11*
    # musl-gcc says that it compiles for glibc, which Python's configure takes for a contradiction.
    printf '#!/bin/sh\ncase "$*" in *-print-multiarch*) exit 0;; esac\nexec musl-gcc "$@"\n' > "$out/musl/cc"
    mkdir -p "$out/musl/hidden" && printf '#!/bin/sh\nexit 1\n' > "$out/musl/hidden/dpkg-architecture"  # names glibc's headers
    chmod +x "$out/musl/cc" "$out/musl/hidden/dpkg-architecture"
    ./configure CC="$out/musl/cc" CPPFLAGS="-I$where/include" LDFLAGS="-L$where/lib" --prefix="$where" --without-ensurepip \
        --disable-test-modules
    PATH="$out/musl/hidden:$PATH" make -s install
    ln -sf "$where/bin/python3.11" "$out/musl/python"
}

for one in ${2:-aarch64 musl}; do $one; done
